import { createHash } from 'node:crypto'
import { APPEND } from './append.lua.js'
import { OPEN } from './open.lua.js'
import { PRELUDE } from './prelude.lua.js'

/** A script of the log, as it is loaded and called. */
export interface LogScript {
  readonly source: string
  /** SHA-1 for EVALSHA. */
  readonly sha: string
}

/** Appends messages to the log. */
export const appendScript = scriptOf(APPEND)
/** Finds where a node continues to read. */
export const openScript = scriptOf(OPEN)

function scriptOf(text: string): LogScript {
  const source = `${PRELUDE}${text}`.trim()
  return { source, sha: createHash('sha1').update(source).digest('hex') }
}
