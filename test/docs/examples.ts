import { relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, type RunnerTask } from 'vitest'
import { ROOT } from './blocks.js'
import { type BlockReader, readerOf } from './readers.mjs'

/**
 * The blocks of the pages that a test file claims in test/docs/readers.mjs. When all its tests have run, and it
 * has not read one of them, the file fails: it would run less than it seems.
 * @param url `import.meta.url` of the test file.
 */
export function blocksFor(url: string): BlockReader {
  const file = relative(ROOT, fileURLToPath(url))
  const reader = readerOf(file)
  // biome-ignore lint/correctness/noEmptyPattern: vitest wants fixtures there
  afterAll(({}, suite) => {
    if (!hasSkipped(suite) && reader.unread().length > 0) {
      throw new Error(`${file} claims blocks that it does not read: ${reader.unread().join(', ')}`)
    }
  })
  return reader
}

/** Because of `-t`, or of a program that is not here. */
function hasSkipped(task: RunnerTask): boolean {
  return task.mode === 'skip' || ('tasks' in task && task.tasks.some(hasSkipped))
}
