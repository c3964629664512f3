package interceptor

import (
	"context"

	"github.com/kube-gauntlet/gauntlet/harness/history"
)

// Message is a request, a response or a watch event on its way through the interceptor.
type Message struct {
	// Part says what the message is.
	Part MessagePart
	// Request is the request, or the request that the response answers. For an event, it is the watch
	// request.
	Request *history.Request
	// Event is the watch event. It is nil for requests and responses, and for an event that the
	// interceptor could not decode.
	Event *history.Delivery
}

// MessagePart says which part of an exchange a [Message] is.
type MessagePart string

// These are the parts of an exchange.
const (
	RequestMessage  MessagePart = "request"
	ResponseMessage MessagePart = "response"
	EventMessage    MessagePart = "event"
)

// OrderFault is a function with which a fault decides when a message passes the interceptor. The
// message passes when the function returns. The function must return if ctx is canceled, and if
// the fault is being healed.
//
// The interceptor calls the function for a request just before it forwards the request, so not for a
// refused one. For a response, it calls the function after the time HoldResponse, and for an event after
// all holds. Many goroutines call an OrderFault concurrently, but the events of one watch follow each
// other. An OrderFault must not change the message or keep a reference to its parts.
type OrderFault func(ctx context.Context, m Message)

// OnMessage registers a fault. The interceptor calls the fault for each message from now on. The
// returned function remove ends the registration, and waits until all calls of the fault have
// returned.
func (i *Interceptor) OnMessage(fault OrderFault) (remove func()) {
	return i.orderFaults.add(fault)
}

// awaitTurn waits until the registered faults let a message pass. It returns an error if ctx is canceled.
func (i *Interceptor) awaitTurn(ctx context.Context, m Message) error {
	for _, h := range i.orderFaults.current.Load().all {
		h.call(func(fault OrderFault) { fault(ctx, m) })
	}
	return ctx.Err()
}

// ordersMessages reports whether a registered fault decides when messages pass.
func (i *Interceptor) ordersMessages() bool { return len(i.orderFaults.current.Load().all) > 0 }
