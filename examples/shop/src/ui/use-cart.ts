import { useEffect, useState } from "react";
import type { Cart } from "../../types/cart";

export function useCart(): Cart {
  const [cart, setCart] = useState<Cart>({ lines: [], total: 0 });
  useEffect(() => {
    fetch("/cart")
      .then((answer) => answer.json())
      .then(setCart);
  }, []);
  return cart;
}
