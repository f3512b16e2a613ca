# An agent that never asks: all it does goes through its shell, and nothing over the protocol.
{
    head -n 1 src/api/cart.rs                   # another's: waits for the decision
    echo '// mine' | tee -a src/api/cart.rs     # likewise
    grep -rl total src/api                      # whatever it meets there
    echo '// mine' >>src/ui/header.tsx          # its own
} >&2
cat >/dev/null                                  # until it is stopped
