use crate::discount;

#[derive(Clone, Debug)]
pub struct Line {
    pub sku: String,
    pub price: u64,
    pub quantity: u64,
}

/// What the buyer pays, in cents.
pub fn total(lines: &[Line]) -> u64 {
    lines.iter().map(|line| discount::apply(line.price) * line.quantity).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(price: u64, quantity: u64) -> Line {
        Line { sku: "tea".to_owned(), price, quantity }
    }

    #[test]
    fn an_empty_cart_costs_nothing() {
        assert_eq!(total(&[]), 0);
    }

    #[test]
    fn every_piece_counts() {
        assert_eq!(total(&[line(1000, 2), line(500, 1)]), 2250);
    }
}
