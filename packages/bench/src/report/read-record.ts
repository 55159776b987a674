import { readFileSync } from 'node:fs'
import { UsageError } from '../exit-codes.js'
import { clientsRecord, isClientsRecord } from '../results/clients-record.js'
import type { ResultRecord, ResultRow } from '../results/result.js'

/**
 * Reads a result from a file that `--json` wrote.
 * @throws {UsageError} when there is no such file, or it is not a result.
 */
export function readRecord(file: string): ResultRecord {
  let value: unknown
  try {
    value = JSON.parse(readFileSync(file, 'utf8'))
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw new UsageError(`${file} could not be read as JSON: ${reason}`, { cause })
  }
  return asRecord(value, file)
}

/** Checks the members that the report relies on, and fills in those that an older or shorter file may lack. */
export function asRecord(value: unknown, name: string): ResultRecord {
  if (isClientsRecord(value)) return clientsRecord(value)
  const isResult =
    isObject(value) &&
    typeof value.scenario === 'string' &&
    typeof value.command === 'string' &&
    isObject(value.machine) &&
    isListOf(value.columns, isColumn) &&
    isListOf(value.identity, (key) => typeof key === 'string') &&
    isListOf(value.rows, isRow)
  if (!isResult) throw new UsageError(`${name} is not a result of this bench: write one with --json`)
  const record = value as unknown as ResultRecord
  return {
    ...record,
    config: record.config ?? {},
    versions: record.versions ?? {},
    assertions: record.assertions ?? [],
    notes: record.notes ?? [],
    runs: record.runs ?? [],
    rows: record.rows.map(
      (row): ResultRow => ({ ...row, spread: row.spread ?? {}, repeatCount: row.repeatCount ?? 1 }),
    ),
  }
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function isListOf(value: unknown, isOne: (item: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isOne)
}

function isColumn(value: unknown): boolean {
  return isObject(value) && ['key', 'title', 'unit', 'format'].every((member) => typeof value[member] === 'string')
}

function isRow(value: unknown): boolean {
  return isObject(value) && typeof value.target === 'string' && typeof value.verdict === 'string'
}
