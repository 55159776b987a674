import { expect, it, onTestFinished } from 'vitest'
import { createServer, type Logger } from 'webmq-server'
import { blocksFor } from './examples.js'

const { exampleOf } = blocksFor(import.meta.url)

const nothing = () => undefined
const SILENT: Logger = {
  trace: nothing,
  debug: nothing,
  info: nothing,
  warn: nothing,
  error: nothing,
  fatal: nothing,
  child: () => SILENT,
}

it('the example of a reload prints what it says', async () => {
  const { code } = exampleOf('operations.md', 'reload')
  const printed: unknown[] = []
  const run = new Function('createServer', 'console', `return (async () => {${code}})()`)
  let stop = (): Promise<void> => Promise.resolve()
  onTestFinished(() => stop())
  const quiet = (options: object) => {
    const server = createServer({ logger: SILENT, ...options })
    stop = () => server.stop()
    return server
  }
  await run(quiet, { log: (...values: unknown[]) => printed.push(values) })
  expect(printed).toEqual([[['origins'], ['port']]])
})
