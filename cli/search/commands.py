"""`./sophia search`: ask a stage's search index."""

from typing import Annotated

import typer
from rich.console import Console

from cli.output import print_json
from cli.search import lib
from cli.stage_access import LOCAL, JsonOption, StageOption, open_stage

app = typer.Typer()


@app.command("search")
def search_documents(
    query: Annotated[str, typer.Argument(help="Words or a question, up to 500 characters.")],
    stage: StageOption = LOCAL,
    document: Annotated[list[str] | None, typer.Option("--document", "-d", help="Only in this document.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="Hits on a page, 1 to 100.")] = 10,
    cursor: Annotated[str | None, typer.Option(help="The page after the one that gave this cursor.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Search the indexed documents by words and meaning; costs one embedding."""
    from api_services.documents.search import search

    with lib.opened(open_stage(stage)) as (index, embedder):
        page = search(index, embedder, query=query, document_ids=document or (), limit=limit, cursor=cursor)
    if json_output:
        print_json(page.model_dump(mode="json", by_alias=True))
        return
    console = Console(emoji=False)
    if not page.hits:
        console.print("nothing found", markup=False)
    first = int(cursor) + 1 if cursor else 1
    for place, hit in enumerate(page.hits, start=first):
        console.print(lib.shown(hit, place))
    if page.next_cursor:
        console.print(f"more with --cursor {page.next_cursor}", style="dim", markup=False)
