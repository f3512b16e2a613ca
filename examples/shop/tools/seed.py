"""Prints a cart as JSON, to try the shop with."""

import json

LINES = [
    {"sku": "tea", "name": "Tea", "price": 1000, "quantity": 2},
    {"sku": "cup", "name": "Cup", "price": 500, "quantity": 1},
]

if __name__ == "__main__":
    print(json.dumps({"lines": LINES, "total": sum(l["price"] * l["quantity"] for l in LINES)}))
