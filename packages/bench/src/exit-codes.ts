/** Exit codes; scripts and CI rely on the numbers. */
export const EXIT = {
  ok: 0,
  /** Something failed while running: a backend died, a client could not connect, a file could not be written. */
  runtime: 1,
  /** The command line asks for something that cannot be run. */
  usage: 2,
  /** The run is complete and at least one `--assert` does not hold. */
  assertion: 3,
  /** The run is complete, and the server refused publishes or did not answer them. */
  failedPublishes: 4,
  interrupted: 130,
} as const

/** The command line asks for something that cannot be run; reported as one sentence, without a stack. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

/** The run could not be completed for a reason the user can act on; reported as one sentence, without a stack. */
export class RunError extends Error {
  override readonly name = 'RunError'
}
