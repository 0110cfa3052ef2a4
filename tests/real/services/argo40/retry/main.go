// Command retry does what `argo retry` and `argo resubmit` do to a Workflow, by Argo's own code.
//
// The CLI itself does not build from the published module (the files of its user interface are missing there), but
// the functions that it calls do. Usage:
//
//	retry retry|resubmit [name=value ...] <workflow.json >answer.json
//
// The answer is {"workflow": ..., "podsToDelete": [...]}. As the CLI does, the caller then deletes those pods and
// updates the Workflow (retry), or creates it (resubmit).
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	wfv1 "github.com/argoproj/argo-workflows/v4/pkg/apis/workflow/v1alpha1"
	"github.com/argoproj/argo-workflows/v4/util/logging"
	"github.com/argoproj/argo-workflows/v4/workflow/packer"
	"github.com/argoproj/argo-workflows/v4/workflow/util"
)

type answer struct {
	Workflow     *wfv1.Workflow `json:"workflow"`
	PodsToDelete []string       `json:"podsToDelete"`
}

func formulate(ctx context.Context, verb string, wf *wfv1.Workflow, parameters []string) (answer, error) {
	result := answer{PodsToDelete: []string{}}
	if err := packer.DecompressWorkflow(ctx, wf); err != nil {
		return result, err
	}
	var err error
	switch verb {
	case "retry":
		result.Workflow, result.PodsToDelete, err = util.FormulateRetryWorkflow(ctx, wf, false, "", parameters)
	case "resubmit":
		result.Workflow, err = util.FormulateResubmitWorkflow(ctx, wf, false, parameters)
	default:
		err = fmt.Errorf("unknown verb %q: retry or resubmit", verb)
	}
	if err != nil {
		return result, err
	}
	return result, packer.CompressWorkflowIfNeeded(ctx, result.Workflow)
}

func run(arguments []string) error {
	if len(arguments) == 0 {
		return fmt.Errorf("usage: retry retry|resubmit [name=value ...] <workflow.json")
	}
	var wf wfv1.Workflow
	if err := json.NewDecoder(os.Stdin).Decode(&wf); err != nil {
		return fmt.Errorf("reading the workflow: %w", err)
	}
	// Argo 4 takes its logger from the context, and writes to standard output unless told otherwise.
	log := logging.NewSlogLoggerCustom(logging.Info, logging.JSON, os.Stderr)
	ctx := logging.WithLogger(context.Background(), log)
	result, err := formulate(ctx, arguments[0], &wf, arguments[1:])
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
