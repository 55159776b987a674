import { describe, expect, it, onTestFinished } from 'vitest'
import { RunError } from '../exit-codes.js'
import { LineProcess } from './line-process.js'

const TIMEOUT_MS = 10_000

/** Answers `echo` with an event, `fail` with an error, `die` by dying, anything else not at all. */
const PROGRAM = `
process.stdout.write('not JSON\\n{"event":"ready"}\\n')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { cmd, id, afterMs = 0 } = JSON.parse(line)
  const write = (event) => process.stdout.write(JSON.stringify(id === undefined ? event : { ...event, id }) + '\\n')
  if (cmd === 'echo') setTimeout(() => write({ event: 'echoed', afterMs }), afterMs)
  if (cmd === 'fail') write({ event: 'error', message: 'no room' })
  if (cmd === 'die') { process.stderr.write('out of memory\\n'); process.exit(7) }
}).on('close', () => process.exit(0))`

function start({ hasIds = true, command = process.execPath } = {}) {
  const program = new LineProcess({ title: 'the program', command, args: ['-e', PROGRAM], hasIds })
  onTestFinished(async () => await program.stop())
  return program
}

describe('a program that is asked in lines', () => {
  it('is waited for, asked and ended', async () => {
    const program = start({ hasIds: false })
    await program.next('ready', TIMEOUT_MS)
    expect(await program.request({ cmd: 'echo' }, 'echoed', TIMEOUT_MS)).toMatchObject({ event: 'echoed' })
    await program.stop()
  })

  it('keeps an event that comes before somebody waits for it', async () => {
    const program = start({ hasIds: false })
    await program.request({ cmd: 'echo' }, 'echoed', TIMEOUT_MS)
    expect(await program.next('ready', TIMEOUT_MS)).toEqual({ event: 'ready' })
  })

  it('may answer in another order', async () => {
    const program = start()
    const slow = program.request({ cmd: 'echo', afterMs: 60 }, 'echoed', TIMEOUT_MS)
    const fast = program.request({ cmd: 'echo', afterMs: 1 }, 'echoed', TIMEOUT_MS)
    expect(await fast).toMatchObject({ afterMs: 1 })
    expect(await slow).toMatchObject({ afterMs: 60 })
  })

  it('tells what it cannot do', async () => {
    const program = start()
    await expect(program.request({ cmd: 'fail' }, 'done', TIMEOUT_MS)).rejects.toThrow('the program: no room')
    await program.request({ cmd: 'echo' }, 'echoed', TIMEOUT_MS)
  })

  it('fails who waits, with its last words, when it dies', async () => {
    const program = start()
    const reason = /the program ended with exit code 7; its last output:\nnot JSON\nout of memory/
    await expect(program.request({ cmd: 'die' }, 'done', TIMEOUT_MS)).rejects.toThrow(reason)
    await expect(program.failed).rejects.toThrow(RunError)
  })

  it('fails who waits when it is stopped', async () => {
    const program = start()
    const answer = program.request({ cmd: 'nothing' }, 'done', TIMEOUT_MS)
    await Promise.all([program.stop(), expect(answer).rejects.toThrow('the program has been stopped')])
  })

  it('is not waited for longer than that', async () => {
    await expect(start().request({ cmd: 'nothing' }, 'done', 50)).rejects.toThrow("gave no 'done' within 0.05 s")
  })

  it('is reported when it cannot be started', async () => {
    await expect(start({ command: '/no/such/program' }).next('ready', TIMEOUT_MS)).rejects.toThrow(
      /could not be started.*ENOENT/,
    )
  })
})
