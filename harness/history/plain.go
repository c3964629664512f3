package history

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file reads the records that nearly all of a history consists of, written as
// Recorder writes them, in little more than half the time that Unmarshal takes. A field
// that is not named here is none that it knows: the line is then left to Unmarshal, as
// is every other that is not just so. What it reads, it reads as Unmarshal does.

// plain reads a line, and reports whether it is one that it can read.
func (r *Record) plain(s *scanner, line []byte) bool {
	s.begin(line)
	for name := range s.fields {
		switch string(name) {
		case "seq":
			r.Seq = s.whole()
		case "at":
			r.At = time.Duration(s.whole())
		case "commit", "truth": // format 1 said truth
			made(&r.Commit).scan(s)
		case "request":
			made(&r.Request).scan(s)
		case "response":
			made(&r.Response).scan(s)
		case "list":
			made(&r.List).scan(s)
		case "delivery":
			made(&r.Delivery).scan(s)
		default:
			s.lost = true
		}
	}
	return s.ended()
}

// made returns what a pointer leads to, which is made if it led nowhere.
func made[T any](pointer **T) *T {
	if *pointer == nil {
		*pointer = new(T)
	}
	return *pointer
}

func (t *Commit) scan(s *scanner) {
	for name := range s.fields {
		switch string(name) {
		case "type":
			t.Type = EventType(s.word())
		case "object":
			t.Object.scan(s)
		default:
			s.lost = true
		}
	}
}

func (r *Request) scan(s *scanner) {
	for name := range s.fields {
		switch string(name) {
		case "id":
			r.ID = uint64(s.natural())
		case "subject":
			r.Subject = s.word()
		case "verb":
			r.Verb = s.word()
		case "resource":
			r.Resource = s.word()
		case "subresource":
			r.Subresource = s.word()
		case "namespace":
			r.Namespace = s.word()
		case "name":
			r.Name = s.word()
		case "path":
			r.Path = s.word()
		case "query":
			r.Query = s.word()
		case "agent":
			r.Agent = s.word()
		case "object":
			made(&r.Object).scan(s)
		case "patch":
			r.Patch = s.raw()
		case "patchType":
			r.PatchType = s.word()
		case "preconditionUID":
			r.PreconditionUID = types.UID(s.word())
		case "bytes":
			r.Bytes = int(s.whole())
		default:
			s.lost = true
		}
	}
}

func (r *Response) scan(s *scanner) {
	for name := range s.fields {
		switch string(name) {
		case "id":
			r.ID = uint64(s.natural())
		case "code":
			r.Code = int(s.whole())
		case "serverCode":
			r.ServerCode = int(s.whole())
		case "reached":
			r.Reached = s.flag()
		case "reason":
			r.Reason = s.word()
		case "cause":
			r.Cause = s.word()
		case "fault":
			r.Fault = s.word()
		case "retryAfter":
			*made(&r.RetryAfter) = int(s.whole())
		case "object":
			made(&r.Object).scan(s)
		case "bytes":
			r.Bytes = int(s.whole())
		default:
			s.lost = true
		}
	}
}

func (l *List) scan(s *scanner) {
	for name := range s.fields {
		switch string(name) {
		case "id":
			l.ID = uint64(s.natural())
		case "subject":
			l.Subject = s.word()
		case "resource":
			l.Resource = s.word()
		case "version":
			l.Version = Version(s.natural())
		case "items":
			scanItems(s, &l.Items, (*Object).scan)
		case "continued":
			l.Continued = s.flag()
		case "more":
			l.More = s.flag()
		default:
			s.lost = true
		}
	}
}

func (d *Delivery) scan(s *scanner) {
	for name := range s.fields {
		switch string(name) {
		case "id":
			d.ID = uint64(s.natural())
		case "subject":
			d.Subject = s.word()
		case "resource":
			d.Resource = s.word()
		case "type":
			d.Type = EventType(s.word())
		case "object":
			d.Object.scan(s)
		case "initialEventsEnd":
			d.InitialEventsEnd = s.flag()
		case "held":
			d.Held = time.Duration(s.whole())
		case "bytes":
			d.Bytes = int(s.whole())
		default:
			s.lost = true
		}
	}
}

func (o *Object) scan(s *scanner) {
	for name := range s.fields {
		switch string(name) {
		case "resource":
			o.Resource = s.word()
		case "namespace":
			o.Namespace = s.word()
		case "name":
			o.Name = s.word()
		case "uid":
			o.UID = types.UID(s.word())
		case "version":
			o.Version = Version(s.natural())
		case "generateName":
			o.GenerateName = s.word()
		case "generation":
			o.Generation = s.whole()
		case "created":
			o.Created = s.time()
		case "deleting":
			o.Deleting = s.time()
		case "labels":
			scanMap(s, &o.Labels)
		case "annotations":
			scanMap(s, &o.Annotations)
		case "finalizers":
			scanItems(s, &o.Finalizers, func(name *string, s *scanner) { *name = s.word() })
		case "owners":
			scanItems(s, &o.Owners, (*Owner).scan)
		case "skewed":
			o.Skewed = s.flag()
		case "body":
			o.Body = s.raw()
		default:
			s.lost = true
		}
	}
}

func (o *Owner) scan(s *scanner) {
	for name := range s.fields {
		switch string(name) {
		case "kind":
			o.Kind = s.word()
		case "name":
			o.Name = s.word()
		case "uid":
			o.UID = types.UID(s.word())
		case "controller":
			o.Controller = s.flag()
		default:
			s.lost = true
		}
	}
}

func scanMap(s *scanner, into *map[string]string) {
	if *into == nil {
		*into = map[string]string{}
	}
	for name := range s.fields {
		label := s.words.of(name)
		(*into)[label] = s.word()
	}
}

// scanItems reads an array, unless there is one already: two are for Unmarshal to merge.
func scanItems[T any](s *scanner, into *[]T, scan func(*T, *scanner)) {
	if *into != nil {
		s.lost = true
		return
	}
	*into = []T{}
	for place := range s.items {
		*into = append(*into, *new(T))
		scan(&(*into)[place], s)
	}
}
