import { statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'

const FOLDER = '/proc/self/fd'
/** A list costs a millisecond of the event loop for some thousand descriptors. */
const LIST_INTERVAL_MS = 30_000

export interface DescriptorFolder {
  /** The number of descriptors since Linux 6.2, before that 0; `undefined`: there is no such folder. */
  readonly size: () => number | undefined
  /** Lists the descriptors, that of the list included, outside the event loop. */
  readonly list: () => Promise<readonly string[]>
}

const PROCESS_FOLDER: DescriptorFolder = {
  size: () => statSync(FOLDER, { throwIfNoEntry: false })?.size,
  list: () => readdir(FOLDER),
}

/** Counts the open descriptors of the process. */
export class OpenDescriptors {
  readonly #folder: DescriptorFolder
  #listed: { readonly atMs: number; readonly count: Promise<number | undefined> } | undefined

  constructor(folder = PROCESS_FOLDER) {
    this.#folder = folder
  }

  /** `undefined` where the system does not tell. Before Linux 6.2 the number may be 30 s old. Cost otherwise: O(1). */
  async count(nowMs = performance.now()): Promise<number | undefined> {
    const size = this.#folder.size()
    if (size !== 0) return size
    if (this.#listed === undefined || nowMs - this.#listed.atMs >= LIST_INTERVAL_MS) {
      const count = this.#folder.list().then(
        (names) => names.length - 1,
        () => undefined,
      )
      this.#listed = { atMs: nowMs, count }
    }
    return await this.#listed.count
  }
}
