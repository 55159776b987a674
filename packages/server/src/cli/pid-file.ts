import { rmSync, writeFileSync } from 'node:fs'
import type { Logger } from '../base/logger.js'

/** A file with the number of this process, for tools that send it signals. It is removed when the process ends in order. */
export class PidFile implements Disposable {
  readonly #file: string
  readonly #logger: Pick<Logger, 'warn'>

  /** A file that cannot be written is no reason to stop a server that listens: the log says so. */
  constructor(file: string, logger: Pick<Logger, 'warn'>) {
    this.#file = file
    this.#logger = logger
    this.#try(() => writeFileSync(file, `${process.pid}\n`), 'the pid file cannot be written')
  }

  [Symbol.dispose](): void {
    this.#try(() => rmSync(this.#file, { force: true }), 'the pid file cannot be removed')
  }

  #try(act: () => void, failure: string): void {
    try {
      act()
    } catch (err) {
      this.#logger.warn({ err, file: this.#file }, failure)
    }
  }
}
