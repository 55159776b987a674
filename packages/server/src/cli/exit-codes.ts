import type { ErrorCode } from 'webmq-client/protocol'

/** Exit codes. A second signal ends the process with `SIGNALED` plus the signal number (130 for Ctrl-C). */
export const EXIT = { OK: 0, FAILED: 1, USAGE: 2, SIGNALED: 128 } as const

/** Errors of the command line; all other errors happen at run time. */
const USAGE_ERRORS: readonly ErrorCode[] = ['E_OPTION_INVALID', 'E_INSECURE']

/** Exit code of a command that failed with this error. */
export function exitCodeOf(code: ErrorCode): number {
  return USAGE_ERRORS.includes(code) ? EXIT.USAGE : EXIT.FAILED
}
