// Package feed hands values to subscribers that may be slower than their sender.
//
//	var events feed.Feed[*tool.Event]
//	subscription, err := events.Subscribe(feed.Options[*tool.Event]{})
//	defer subscription.Close()
//	for {
//		event, lost, err := subscription.Next(ctx)
//		…
//	}
//
// Each subscription has a queue with a bound. When it is full, the oldest value gives way to
// the new one, and is counted: the state of things now matters more than how it came about,
// and a subscriber that knows what it missed can ask. Nothing that a subscriber does or leaves
// undone makes a sender wait.
package feed
