/** Cents as people write them: `money(1250)` is "12.50 €". */
export function money(cents: number): string {
  return `${(cents / 100).toFixed(2)} €`;
}
