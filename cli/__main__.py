"""`python -m cli`, what `./sophia` runs."""

from cli.app import main

if __name__ == "__main__":
    main()
