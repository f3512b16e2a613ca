#!/bin/sh
# Makes the project of the guides, and three agents that play a script in place of real ones.
#
#   examples/first-team/make.sh [FOLDER]    the home folder, if none is named
#
# FOLDER/shop is a git repository with a small shop. FOLDER/shop-agents has the programs of the agents.
set -eu
from=$(cd "$(dirname "$0")" && pwd)
folder=${1:-$HOME}
for made in shop shop-agents; do
    if [ -e "$folder/$made" ]; then
        echo "$folder/$made is there already: remove it, or name another folder" >&2
        exit 1
    fi
done
mkdir -p "$folder"
folder=$(cd "$folder" && pwd)

agents=$folder/shop-agents
mkdir "$agents"
for agent in claude-agent-acp gemini opencode; do
    { printf '[agent]\nname = "%s"\n\n' "$agent"; cat "$from/branches.toml" "$from/agents.toml"; } >"$agents/$agent.toml"
    printf '#!/bin/sh\nexec eisen-core dev scripted-agent "%s/%s.toml"\n' "$agents" "$agent" >"$agents/$agent"
    chmod +x "$agents/$agent"
done

shop=$folder/shop
mkdir -p "$shop/docs" "$shop/src/api" "$shop/src/ui" "$shop/test"
cd "$shop"
echo .env >.gitignore
echo PORT=8080 >.env
echo "Reading is fine. A file is changed by the agent that owns it." >docs/rules.md
echo '{ "name": "shop" }' >package.json
echo "require('../src/ui/header');" >test/header.js
cat >src/api/cart.js <<'EOF'
function total(items) {
  return items.reduce((sum, item) => sum + item.price, 0);
}

module.exports = { total };
EOF
cat >src/ui/header.js <<'EOF'
const { total } = require('../api/cart');

module.exports = (items) => `Cart`;
EOF
git -c init.defaultBranch=main init -q
git config user.name >/dev/null || git config user.name Ana
git config user.email >/dev/null || git config user.email ana@example.org
git add -A
git commit -q -m Begin

echo "The project is in $shop. In each terminal in which you follow a guide:"
echo "  export PATH=$agents:\$PATH"
