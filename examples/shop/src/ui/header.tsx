import { Basket } from "./basket";

export function Header() {
  return (
    <header>
      <h1>Shop</h1>
      <Basket />
    </header>
  );
}
