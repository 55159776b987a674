/** What `npm test` leaves out, what it runs of the files that take turns, and the turn for parts of files. */
export function shortScope(commit?: { readonly hash: string; readonly changed: readonly string[] }): {
  readonly left: readonly string[]
  readonly chosen: readonly string[]
  readonly turn: string
}

/** Whether to play the tests and lint of Rust, and Autobahn's suite, in this turn. */
export function playsRust(turn: string): boolean
