package hummock

import (
	"context"

	"google.golang.org/grpc"

	hummockv1 "hummock.dev/go/hummock/v1"
)

// DeleteWhere removes all memories of a project that pass a filter, which has one condition at least, and says how many
// it removed, also where it failed on the way. One call removes a few hundred; each has a deadline and a request_id of its
// own, and what is left when it fails can be removed by doing it again.
func (c *Client) DeleteWhere(
	ctx context.Context, project string, where *hummockv1.MemoryFilter, options ...grpc.CallOption,
) (int, error) {
	removed := 0
	for {
		reply, err := c.DeleteMemories(ctx, &hummockv1.DeleteMemoriesRequest{Project: project, Filter: where}, options...)
		removed += int(reply.GetDeletedCount())
		if err != nil || reply.GetRemainingCount() == 0 {
			return removed, err
		}
	}
}
