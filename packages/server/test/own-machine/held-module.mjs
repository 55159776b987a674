// Loaded with --import: the process waits, with a turning event loop, where it reads the module that WEBMQ_TEST_HELD names, for as
// long as the file WEBMQ_TEST_MARK is there. It writes that file when it begins to wait.
import { register } from 'node:module'

const HOOKS = `
import { existsSync, writeFileSync } from 'node:fs'
import { setTimeout } from 'node:timers/promises'

const { WEBMQ_TEST_HELD: held, WEBMQ_TEST_MARK: mark } = process.env

export async function load(url, context, next) {
  if (url.endsWith(held)) {
    writeFileSync(mark, '')
    while (existsSync(mark)) await setTimeout(5)
  }
  return next(url, context)
}
`
register(`data:text/javascript,${encodeURIComponent(HOOKS)}`)
