package environment

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/kube-gauntlet/gauntlet/harness/cluster"
	"github.com/kube-gauntlet/gauntlet/harness/internal/image"
	"github.com/kube-gauntlet/gauntlet/harness/internal/pods"
	"github.com/kube-gauntlet/gauntlet/harness/internal/setup"
	"github.com/kube-gauntlet/gauntlet/harness/subject"
	"github.com/kube-gauntlet/gauntlet/harness/workload"
)

// nodes returns the cluster as a NodeAccess, which loads images onto the nodes. It returns an error
// if the provider lacks the capability LoadsImages.
func (e *Environment) nodes() (cluster.NodeAccess, error) {
	nodes, ok := e.Cluster.(cluster.NodeAccess)
	if !ok {
		return nil, fmt.Errorf("provider %s cannot load images onto nodes: found a cluster of type %T; expected a cluster that implements cluster.NodeAccess", e.Provider, e.Cluster)
	}
	return nodes, nil
}

// LoadPodImage loads the container image of the workload's pods onto all worker nodes. The image
// contains the stand-in program, which faults can control. If the kubelets are simulated,
// LoadPodImage does nothing.
//
// The argument gauntlet is the path of the gauntlet executable. If the executable `standin` is not
// in the same directory, LoadPodImage builds it.
func (e *Environment) LoadPodImage(ctx context.Context, gauntlet string) error {
	if !e.Capabilities().Has(cluster.LoadsImages, cluster.ControlsContainers) {
		return nil
	}
	return e.setUp(ctx, "pod image", func(ctx context.Context) error {
		nodes, err := e.nodes()
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, clusterTimeout)
		defer cancel()
		binary, err := setup.Own(ctx, gauntlet, setup.StandIn)
		if err != nil {
			return err
		}
		e.Pods.Image, err = loadBinary(ctx, e.StateDir, image.Spec{Reference: workload.StandInImage, Binary: binary}, nodes.Workers()...)
		return err
	})
}

// loadSubject loads the images of the program under test and of the relay onto the control plane
// node. The relay connects a program in a pod to the fault proxy. loadSubject returns the control
// plane node and the two images.
func (e *Environment) loadSubject(ctx context.Context, o *SubjectOptions) (node cluster.Node, target, relay pods.Image, err error) {
	nodes, err := e.nodes()
	if err != nil {
		return nil, target, relay, err
	}
	loads, ctx := errgroup.WithContext(ctx)
	loads.Go(func() (err error) {
		target, err = e.loadTarget(ctx, nodes, o)
		return err
	})
	loads.Go(func() (err error) {
		relay.Reference, err = loadBinary(ctx, e.StateDir, image.Spec{
			Reference: "localhost/gauntlet/relay:run", Binary: o.Gauntlet, Args: []string{"relay"},
		}, nodes.ControlPlane())
		return err
	})
	return nodes.ControlPlane(), target, relay, loads.Wait()
}

// loadTarget loads the container image of the program under test onto the control plane node. It
// returns the image.
//
// If the program is an executable, loadTarget builds an image from the executable. If the program
// is an image, loadTarget copies it from the local container engine, unless the engine lacks the
// image. With --subject=upstream, loadTarget loads nothing, because the node already has the
// image.
func (e *Environment) loadTarget(ctx context.Context, nodes cluster.NodeAccess, o *SubjectOptions) (pods.Image, error) {
	if o.Target == subject.Upstream {
		reference, err := nodes.ControllerManagerImage(ctx)
		return pods.Image{Reference: reference, Command: []string{"kube-controller-manager"}}, err
	}
	if reference, ok := o.Target.Image(); ok {
		archive := filepath.Join(e.StateDir, "image.tar")
		defer os.Remove(archive)
		has, err := nodes.SaveImage(ctx, reference, archive)
		// If the local container engine does not have the image, the node may have the image. If
		// the node lacks the image too, the subject's pod does not start.
		if err == nil && has {
			err = nodes.ControlPlane().LoadImage(ctx, archive)
		}
		return pods.Image{Reference: reference}, err
	}
	binary, err := o.Target.Executable(o.Ours, "")
	if err != nil {
		return pods.Image{}, err
	}
	reference, err := loadBinary(ctx, e.StateDir, image.Spec{Reference: "localhost/gauntlet/subject:run", Binary: binary}, nodes.ControlPlane())
	return pods.Image{Reference: reference}, err
}

// loadBinary builds an image from an executable, loads the image onto the nodes, and returns the
// image's name. It writes a temporary archive to dir.
func loadBinary(ctx context.Context, dir string, spec image.Spec, nodes ...cluster.Node) (string, error) {
	archive, err := os.CreateTemp(dir, "image-*.tar")
	if err != nil {
		return "", fmt.Errorf("building the image %s: %w", spec.Reference, err)
	}
	defer os.Remove(archive.Name())
	if err := errors.Join(image.Write(archive, spec), archive.Close()); err != nil {
		return "", err
	}
	loads, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		loads.Go(func() error { return node.LoadImage(ctx, archive.Name()) })
	}
	return spec.Reference, loads.Wait()
}
