import type { Block } from './page-blocks.d.mts'

export interface NamedBlock extends Block {
  readonly name: string
}

/** Reads blocks of the pages for one file of `READERS`: only those that it claims there. */
export interface BlockReader {
  examples(wanted?: (block: Block) => boolean): Block[]
  /** The named blocks of a page, in their order; with a language, only those. `page` may be relative to docs. */
  examplesOf(page: string, language?: string): NamedBlock[]
  /** One block by its name. @throws {TypeError} when the page has none, or the file does not claim it. */
  exampleOf(page: string, name: string): NamedBlock
  /** Claimed blocks that were not read yet: `page:line`. */
  unread(): string[]
}

export const READERS: Readonly<Record<string, (block: Block) => boolean>>
export function allBlocks(): Block[]
export function readerOf(file: string): BlockReader
