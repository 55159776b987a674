/** A fenced block of a page. */
export interface Block {
  /** Path of the page from the root of the repository. */
  readonly page: string
  /** Line of the first line of code, from 1. */
  readonly line: number
  /** The word after the fence: `sh`, `ts`, `json`; empty without one. */
  readonly language: string
  /** Without the indentation of its fence. */
  readonly code: string
  /** Given by the comment before it: `<!-- run: name -->`. */
  readonly name: string | undefined
  /** A comment `<!-- continues -->` precedes it: it uses names of the block before. */
  readonly continues: boolean
  /** Reasons of a comment `<!-- not run: reason, reason -->`: why it is not run, or some of its commands are not. */
  readonly notRun: readonly string[]
}

export function pages(): string[]
export function blocksOf(page: string, text?: string): Block[]
