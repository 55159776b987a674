import { writeFileSync } from 'node:fs'
import { RunError } from '../exit-codes.js'
import type { ProgressOutput } from '../progress.js'
import type { ResultRecord } from '../results/result.js'
import { csvText } from './csv.js'
import { recordPage } from './record-page.js'
import { svgText } from './svg.js'

/** Writes the complete record. @param file `-` is standard output. @throws {RunError} */
export function writeJson(record: object, file: string, stdout: ProgressOutput): void {
  writeOutput('--json', `${JSON.stringify(record, null, 2)}\n`, file, stdout)
}

/** Writes the table of medians as CSV. @param file `-` is standard output. @throws {RunError} */
export function writeCsv(record: ResultRecord, file: string, stdout: ProgressOutput): void {
  writeOutput('--csv', csvText(record), file, stdout)
}

/** Writes one self-contained page with plots. @param file `-` is standard output. @throws {RunError} */
export function writeHtml(record: ResultRecord, file: string, stdout: ProgressOutput): void {
  writeOutput('--html', recordPage(record), file, stdout)
}

/**
 * Writes the main plot as SVG.
 * @param file `-` is standard output.
 * @throws {RunError} also without anything to plot.
 */
export function writeSvg(record: ResultRecord, file: string, stdout: ProgressOutput): void {
  writeOutput('--svg', svgText(record), file, stdout)
}

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
