"""Tables of the search index."""

from typing import Final

from api_services.documents.index.driver import Statement

SCHEMA_VERSION: Final = 1


def schema(model: str, dimension: int) -> list[Statement]:
    """Statements that make an empty index for `model`; harmless where there is one.

    `bits` holds one sign bit a dimension, for chunks in search only: narrow rows are scanned whole in milliseconds.
    Triggers keep full text, vectors and bits in step with `chunks`.
    """
    # libSQL reads the dimension from the type's name only without a space before the bracket.
    tables = [
        "CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
        """CREATE TABLE IF NOT EXISTS documents (
          document_id TEXT PRIMARY KEY, title TEXT NOT NULL, version INTEGER NOT NULL, revision INTEGER NOT NULL,
          generation TEXT NOT NULL, chunks INTEGER NOT NULL, removed INTEGER NOT NULL) WITHOUT ROWID""",
        """CREATE TABLE IF NOT EXISTS chunks (
          chunk_id INTEGER PRIMARY KEY AUTOINCREMENT, document_id TEXT NOT NULL, generation TEXT NOT NULL,
          number INTEGER NOT NULL, content_hash TEXT NOT NULL, heading TEXT NOT NULL, text TEXT NOT NULL,
          title TEXT NOT NULL, summary TEXT NOT NULL, keywords TEXT NOT NULL, questions TEXT NOT NULL,
          written_at INTEGER NOT NULL, UNIQUE (document_id, generation, number))""",
        f"""CREATE TABLE IF NOT EXISTS vectors (
          chunk_id INTEGER PRIMARY KEY, embedding F32_BLOB({dimension}) NOT NULL)""",
        f"CREATE TABLE IF NOT EXISTS bits (chunk_id INTEGER PRIMARY KEY, embedding F1BIT_BLOB({dimension}) NOT NULL)",
        """CREATE VIRTUAL TABLE IF NOT EXISTS chunks_fts USING fts5(
          heading, text, title, summary, keywords, questions,
          content='chunks', content_rowid='chunk_id', tokenize='unicode61 remove_diacritics 2')""",
        """CREATE TRIGGER IF NOT EXISTS chunks_inserted AFTER INSERT ON chunks BEGIN
          INSERT INTO chunks_fts (rowid, heading, text, title, summary, keywords, questions)
          VALUES (new.chunk_id, new.heading, new.text, new.title, new.summary, new.keywords, new.questions);
        END""",
        """CREATE TRIGGER IF NOT EXISTS chunks_deleted AFTER DELETE ON chunks BEGIN
          INSERT INTO chunks_fts (chunks_fts, rowid, heading, text, title, summary, keywords, questions)
          VALUES ('delete', old.chunk_id, old.heading, old.text, old.title, old.summary, old.keywords, old.questions);
          DELETE FROM vectors WHERE chunk_id = old.chunk_id;
          DELETE FROM bits WHERE chunk_id = old.chunk_id;
        END""",
    ]
    meta = (("schema", str(SCHEMA_VERSION)), ("model", model), ("dimension", str(dimension)))
    return [
        *(Statement(table) for table in tables),
        *(Statement("INSERT OR IGNORE INTO meta (key, value) VALUES (?1, ?2)", pair) for pair in meta),
    ]
