import type { Block } from '../../scripts/lib/docs-blocks.mjs'

/**
 * Why a block is not run: `<!-- not run: reason, reason -->` above it. In a block of commands a reason excuses only the
 * commands that begin as it says; the others are run.
 */
export const REASONS: Readonly<Record<string, { readonly languages: readonly string[]; readonly begins?: RegExp }>> = {
  // The guides show what a page had before.
  'code of another product': { languages: ['js'] },
  // Trees of files, paths of messages.
  'a picture': { languages: [''] },
}

/** The commands of a block without comments; a command may have several lines. */
export function commandsOf({ code }: Pick<Block, 'code'>): string[] {
  return code
    .replaceAll('\\\n', '')
    .split('\n')
    .map((line) => line.replace(/(^| +)# .*$/, '').trim())
    .filter((line) => line !== '')
}

/** Whether a reason that the block gives excuses the command. */
export function isExcused(block: Block, command: string): boolean {
  return block.notRun.some((reason) => REASONS[reason]?.begins?.test(command))
}
