import { rmSync, writeFileSync } from 'node:fs'
import type { Logger } from '../base/logger.js'

/**
 * Writes a file with the number of this process, for tools that send it signals. It is removed when the process ends in order.
 * A file that cannot be written is no reason to stop a server that listens: the log says so.
 */
export function writePidFile(file: string, logger: Pick<Logger, 'warn'>): Disposable {
  const attempt = (act: () => void, failure: string) => {
    try {
      act()
    } catch (err) {
      logger.warn({ err, file }, failure)
    }
  }
  attempt(() => writeFileSync(file, `${process.pid}\n`), 'the pid file cannot be written')
  return { [Symbol.dispose]: () => attempt(() => rmSync(file, { force: true }), 'the pid file cannot be removed') }
}
