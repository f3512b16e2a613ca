import { money } from "./money";
import { useCart } from "./use-cart";

export function CartPage() {
  const cart = useCart();
  return (
    <table>
      {cart.lines.map((line) => (
        <tr key={line.sku}>
          <td>{line.name}</td>
          <td>{line.quantity}</td>
          <td>{money(line.price * line.quantity)}</td>
        </tr>
      ))}
    </table>
  );
}
