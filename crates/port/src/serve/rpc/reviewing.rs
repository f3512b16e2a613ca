//! Owns the methods of reviews, which the team performs.

use super::{MethodCall, Reply, reply};
use crate::serve::{Refused, ReviewRequest};
use crate::wire::{
    CommentHunk, CommentParams, GetReview, GetReviewParams, ReviewHunk, ReviewHunkParams,
};

pub(super) async fn get_review(
    call: MethodCall<'_>,
    params: GetReviewParams,
) -> Result<Reply<GetReview>, Refused> {
    reply(&call.shared.team.review(ReviewRequest::Look(params)).await?)
}

pub(super) async fn review_hunk(
    call: MethodCall<'_>,
    params: ReviewHunkParams,
) -> Result<Reply<ReviewHunk>, Refused> {
    reply(&call.shared.team.review(ReviewRequest::Decide(params)).await?)
}

pub(super) async fn comment(
    call: MethodCall<'_>,
    params: CommentParams,
) -> Result<Reply<CommentHunk>, Refused> {
    reply(&call.shared.team.review(ReviewRequest::Comment(params)).await?)
}
