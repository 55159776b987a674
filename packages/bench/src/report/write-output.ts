import { writeFileSync } from 'node:fs'
import { RunError } from '../exit-codes.js'
import type { ProgressOutput } from '../progress.js'
import { csvText } from './csv.js'
import { asRecord } from './read-record.js'
import { recordPage } from './record-page.js'
import { svgText } from './svg.js'

/** The files of a result by their flags, and their text. @throws {RunError} for `svg` without anything to plot. */
export const FILES = {
  json: (record: object) => `${JSON.stringify(record, null, 2)}\n`,
  csv: (record: object) => csvText(asRecord(record, 'the result')),
  html: (record: object) => recordPage(asRecord(record, 'the result')),
  svg: (record: object) => svgText(asRecord(record, 'the result')),
} as const

/** Writes a text to a file, or to standard output for `-`. @throws {RunError} naming the flag and the file. */
export function writeOutput(flag: string, text: string, file: string, stdout: ProgressOutput): void {
  if (file === '-') {
    stdout.write(text)
    return
  }
  try {
    writeFileSync(file, text)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new RunError(`${flag} ${file} could not be written: ${reason}`, { cause })
  }
}
