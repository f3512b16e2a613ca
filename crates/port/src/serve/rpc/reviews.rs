//! Owns the methods of reviews, which the team performs.

use super::{MethodCall, Reply, reply};
use crate::serve::{Refused, ReviewRequest};
use crate::wire::{
    BranchReview, CommentHunk, CommentParams, GetReview, GetReviewParams, ReviewHunk,
    ReviewHunkParams,
};

pub(super) async fn get_review(
    call: MethodCall<'_>,
    params: GetReviewParams,
) -> Result<Reply<GetReview>, Refused> {
    reply(&reviewed(&call, ReviewRequest::Look(params)).await?)
}

pub(super) async fn review_hunk(
    call: MethodCall<'_>,
    params: ReviewHunkParams,
) -> Result<Reply<ReviewHunk>, Refused> {
    reply(&reviewed(&call, ReviewRequest::Decide(params)).await?)
}

pub(super) async fn comment(
    call: MethodCall<'_>,
    params: CommentParams,
) -> Result<Reply<CommentHunk>, Refused> {
    reply(&reviewed(&call, ReviewRequest::Comment(params)).await?)
}

async fn reviewed(call: &MethodCall<'_>, request: ReviewRequest) -> Result<BranchReview, Refused> {
    // The journal names the prompt behind each hunk: also behind the last one.
    let _ = call.shared.sources.recorded().await;
    call.shared.team.review(request).await
}
