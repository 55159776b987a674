import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, it } from 'vitest'

const PROGRAM = fileURLToPath(new URL('record-formats.mjs', import.meta.url))
const ROOT = fileURLToPath(new URL('../..', import.meta.url))

interface Formats {
  readonly written: object
  readonly read: object
}

/** Bytes that the older state has written for other nodes and into brokers, and how it reads them. */
const older = JSON.parse(readFileSync(new URL('formats.json', import.meta.url), 'utf8')) as Formats

function formatsOf(...args: string[]): Formats {
  return JSON.parse(execFileSync(process.execPath, [PROGRAM, ROOT, ...args], { encoding: 'utf8' }))
}

it('reads what the older state has written as that does', () => {
  expect(formatsOf(JSON.stringify(older.written)).read).toEqual(older.read)
})

it('writes what the older state can read', () => {
  // Whoever changes a format changes its version, the table in docs/operations.md, and these bytes.
  expect(formatsOf().written).toEqual(older.written)
})
