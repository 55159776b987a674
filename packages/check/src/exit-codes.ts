/** Exit codes; scripts and CI rely on the numbers. */
export const EXIT = {
  /** Every promise was kept. */
  held: 0,
  /** At least one was not. */
  violated: 1,
  /** Nothing can be said: a wrong command line, no connection, a refused token, a command of the operator that failed. */
  notRun: 2,
  interrupted: 130,
} as const

/** Why nothing could be checked: one sentence, shown without a stack. */
export class CannotRun extends Error {
  override readonly name = 'CannotRun'
}
