/** What `GET /cart` answers. Amounts are in cents. */
export interface Cart {
  lines: Line[];
  total: number;
}

export interface Line {
  sku: string;
  name: string;
  price: number;
  quantity: number;
}
