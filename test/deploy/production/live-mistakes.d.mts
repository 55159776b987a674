export interface LiveMistake {
  readonly name: string
  /** The finding of `doctor --production` that names it. */
  readonly check: string
}

export const MISTAKES: readonly LiveMistake[]
