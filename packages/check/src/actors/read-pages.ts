import type { PageRecord, ReadRecord, Selection } from '../judging/record.js'
import type { Connection } from './connection.js'
import { selectionOptions } from './wire.js'

/** A log that grows while it is read may have a next page for ever. */
const MAX_PAGES = 200

/**
 * Reads the log with `history` or `listen`, and follows its pages to the end [P-6.9].
 * @param done Called when there are no more pages, or after an error; not if the connection ends.
 */
export function readPages(connection: Connection, read: ReadRecord, nowMs: () => number, done?: () => void): void {
  const ask = (asked: Selection) => {
    const page: PageRecord = { connection: connection.record.number, askedAtMs: nowMs(), asked, messages: [] }
    read.pages.push(page)
    connection.request(read.verb, `${read.pattern}${selectionOptions(asked)}`, {
      ok: (answer) => {
        page.answer = answer
      },
      replayed: (message) => {
        page.messages.push(message)
      },
      complete: ({ isMore, position }) => {
        page.settledAtMs = nowMs()
        // The newest messages first cannot be continued.
        const goesOn = isMore && !asked.isReverse && position !== undefined && read.pages.length < MAX_PAGES
        if (goesOn) ask({ since: position })
        else done?.()
      },
      refused: (code) => {
        page.code = code
        page.settledAtMs = nowMs()
        done?.()
      },
    })
  }
  ask(read.asked)
}
