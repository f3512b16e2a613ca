while read -r word thread; do
  case $word in
  prompt)
    IFS= read -r text
    wait
    (
      trap 'for s in INT INT TERM; do kill -$s "$!" 2>/dev/null && sleep 1; done' TERM
      if [ "$thread" ]; then set -- "$@" resume "$thread"; fi
      printf %b "$text" | "$0" "$@" - &
      wait "$!"
      echo "{\"type\":\"exited\",\"status\":$?}"
    ) &
    turn=$! ;;
  cancel) kill "$turn" ;;
  esac
done
kill "$turn" 2>/dev/null
wait
