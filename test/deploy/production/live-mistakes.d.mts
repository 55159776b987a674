export interface LiveMistake {
  readonly name: string
  /** The finding of `doctor --production` that names it. */
  readonly check: string
  /** The broker that can have it; absent: all. */
  readonly of?: string
}

export const MISTAKES: readonly LiveMistake[]
