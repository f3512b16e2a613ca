#!/bin/sh
# An agent that speaks plain words: reads a file, and writes another if it may.
while read -r word rest; do
    case $word in
    do)
        echo "say I was asked: $rest"
        cat src/ui/app.txt >/dev/null && echo "read src/ui/app.txt"
        echo "may 1 write src/core/lib.txt"
        ;;
    yes)
        echo changed >> src/core/lib.txt && echo "wrote src/core/lib.txt"
        echo done
        ;;
    no)
        echo "say I may not."
        echo done
        ;;
    stop) echo done ;;
    esac
done
