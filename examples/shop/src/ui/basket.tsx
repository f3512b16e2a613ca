import { useCart } from "./use-cart";

export function Basket() {
  const cart = useCart();
  return <a href="/cart">{cart.lines.length} items</a>;
}
