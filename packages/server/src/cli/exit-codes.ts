import type { ErrorCode } from 'webmq-client/protocol'

/** How the process ends. `SIGNALED` plus the number of the signal: ended at once by a second signal (130 for Ctrl-C). */
export const EXIT = { OK: 0, FAILED: 1, USAGE: 2, SIGNALED: 128 } as const

/** Errors that the one who typed the command can take back; all others are of the run. */
const USAGE_ERRORS: readonly ErrorCode[] = ['E_OPTION_INVALID', 'E_INSECURE']

/** Exit code of a command that failed with this error. */
export function exitCodeOf(code: ErrorCode): number {
  return USAGE_ERRORS.includes(code) ? EXIT.USAGE : EXIT.FAILED
}
