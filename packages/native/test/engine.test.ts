import { spawn } from 'node:child_process'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { describe, expect, it, onTestFinished } from 'vitest'
import { loadNativeEngine, type NativeEngine, type NativeOptions } from '../index.js'

const OPTIONS: NativeOptions = {
  threads: 2,
  maxMessageBytes: 1_000,
  maxOutboxBytes: 1_000_000,
  maxHeaderBytes: 8_192,
  maxConnections: 10,
  handshakeTimeoutMs: 1_000,
  pingIntervalMs: 0,
  pingTimeoutMs: 1_000,
  closeTimeoutMs: 1_000,
  handsHttpOver: false,
}

function start(options: Partial<NativeOptions> = {}, wake: () => void = () => undefined): NativeEngine {
  const Engine = loadNativeEngine()
  const engine = new Engine({ ...OPTIONS, ...options }, wake)
  onTestFinished(() => engine.close())
  return engine
}

describe('native engine', () => {
  it.each([0, 65])('refuses %i threads with a code of the error table', (threads) => {
    expect(() => start({ threads })).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
  })

  it('refuses a time that is none', () => {
    expect(() => start({ closeTimeoutMs: -1 })).toThrow(expect.objectContaining({ code: 'E_OPTION_INVALID' }))
  })

  it('refuses an address that is taken, and one that is none', () => {
    const { port } = start().listen('127.0.0.1', 0)
    expect(() => start().listen('127.0.0.1', port)).toThrow(expect.objectContaining({ code: 'E_ADDRESS_IN_USE' }))
    expect(() => start().listen('here', 0)).toThrow(expect.objectContaining({ code: 'E_ADDRESS_UNAVAILABLE' }))
  })

  it('listens on IPv6', () => {
    expect(start().listen('::1', 0)).toEqual({ host: '::1', port: expect.any(Number) })
  })

  it('refuses commands that are cut, and a descriptor that is none', () => {
    const engine = start()
    expect(() => engine.submit(Buffer.alloc(20, 1), 20)).toThrow(
      expect.objectContaining({ code: 'E_TRANSPORT_FAILED' }),
    )
    expect(() => engine.attach(-1, Buffer.alloc(0))).toThrow(expect.objectContaining({ code: 'E_TRANSPORT_FAILED' }))
    expect(() => engine.attach(999_999, Buffer.alloc(0))).toThrow(
      expect.objectContaining({ code: 'E_TRANSPORT_FAILED' }),
    )
  })

  it('wakes JavaScript when events wait, and says how much room they need', async () => {
    const woken = new Promise<void>((resolve) => start({ threads: 1 }, resolve).shutDown())
    await woken
    const engine = start({ threads: 1 })
    engine.close()
    // `quiet` and `ended`, 16 bytes each.
    expect(engine.drain(Buffer.alloc(10))).toBe(-16)
    expect(engine.drain(Buffer.alloc(100))).toBe(32)
    expect(engine.drain(Buffer.alloc(100))).toBe(0)
  })

  it('may be closed twice, and refuses to listen then', () => {
    const engine = start()
    engine.close()
    engine.close()
    expect(() => engine.listen('127.0.0.1', 0)).toThrow(expect.objectContaining({ code: 'E_NOT_RUNNING' }))
    engine.submit(Buffer.alloc(0), 0)
    engine.stopAccepting()
    engine.shutDown()
    expect(engine.takeSocket(1)).toBe(-1)
    expect(engine.stats().connections).toBe(0)
  })
})

const UPGRADE = 1
const MESSAGE = 2
const HANDSHAKE = [
  'GET / HTTP/1.1',
  'Host: here',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  '\r\n',
].join('\r\n')
/** A text frame with the payload `hi` and a mask of zeros (RFC 6455 §5.2). */
const FRAME = Buffer.from([0x81, 0x82, 0, 0, 0, 0, 0x68, 0x69])

/** Packs the command that accepts an upgrade: see `crates/engine/src/command.rs`. */
function packAccept(commands: Buffer, id: number): number {
  commands.fill(0, 0, 16)
  commands[0] = 1
  commands.writeUInt16LE(0xffff, 2)
  commands.writeUInt32LE(16, 4)
  commands.writeDoubleLE(id, 8)
  return 16
}

describe('inline mode', () => {
  /** Starts an engine whose turns go to `turned`, and a client that says `hi` whenever it gets something. */
  function startInline(turned: (kind: number, engine: NativeEngine) => void): void {
    const events = Buffer.alloc(65_536)
    const commands = Buffer.alloc(1_000)
    const handle = (length: number) => {
      let packed = 0
      for (let at = 0; at < length; at += events.readUInt32LE(at + 4)) {
        if (events[at] === UPGRADE) packed = packAccept(commands, events.readDoubleLE(at + 8))
      }
      return packed
    }
    const drain = () => {
      for (let length = engine.drain(events); length > 0; length = engine.drain(events)) {
        engine.submit(commands, handle(length))
      }
    }
    const engine = start({ threads: 1 }, drain)
    const isInline = engine.enableInline(events, commands, (length) => {
      const packed = handle(length)
      turned(events[0] ?? 0, engine)
      return packed
    })
    expect(isInline).toBe(true)
    const client = connect(engine.listen('127.0.0.1', 0).port, '127.0.0.1', () => client.write(HANDSHAKE))
    onTestFinished(() => void client.destroy())
    // While another turn has the first message, it says it again.
    const timer = setInterval(() => client.write(FRAME), 50)
    onTestFinished(() => clearInterval(timer))
    client.on('error', () => undefined)
  }

  it('gets the messages of a connection without a wake-up', async () => {
    const kind = await new Promise<number>((resolve) => startInline((kind) => kind === MESSAGE && resolve(kind)))
    expect(kind).toBe(MESSAGE)
  })

  it('may close the engine in the middle of a turn', async () => {
    const engine = await new Promise<NativeEngine>((resolve) =>
      startInline((kind, engine) => {
        if (kind !== MESSAGE) return
        engine.close()
        resolve(engine)
      }),
    )
    expect(() => engine.listen('127.0.0.1', 0)).toThrow(expect.objectContaining({ code: 'E_NOT_RUNNING' }))
  })
})

/** Runs a script beside an engine in a process of its own; resolves with its end. */
async function run(script: string): Promise<{ code: number | null; signal: string | null; output: string }> {
  const module = fileURLToPath(new URL('../index.js', import.meta.url))
  const prelude = `import { loadNativeEngine } from ${JSON.stringify(module)}
    const Engine = loadNativeEngine()
    const engine = new Engine(${JSON.stringify(OPTIONS)}, () => engine.drain(Buffer.alloc(1_000)))
    engine.enableInline(Buffer.alloc(1_000), Buffer.alloc(1_000), () => 0)
    engine.listen('127.0.0.1', 0)\n`
  const child = spawn(process.execPath, ['--input-type=module', '-e', prelude + script])
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
  }
  return await new Promise((resolve) => child.once('close', (code, signal) => resolve({ code, signal, output })))
}

describe('a process with a native engine', () => {
  it('ends by itself when the engine is closed', async () => {
    await expect(run('engine.close()')).resolves.toEqual({ code: 0, signal: null, output: '' })
    await expect(run('setTimeout(() => engine.close(), 200)')).resolves.toEqual({ code: 0, signal: null, output: '' })
  })

  it('goes on while the engine runs, and can be ended all the same', async () => {
    const script = `setTimeout(() => { console.log('still here'); process.exit(3) }, 100).unref()`
    await expect(run(script)).resolves.toEqual({ code: 3, signal: null, output: 'still here\n' })
  })

  it.each([
    ['are more than there is room for', 2_000],
    ['are malformed', 20],
  ])('has an uncaught exception when the commands of a turn %s', async (_what, length) => {
    const script = `
      import { connect } from 'node:net'
      process.on('uncaughtException', ({ code }) => process.exit(code === 'E_TRANSPORT_FAILED' ? 7 : 1))
      engine.close()
      const next = new Engine(${JSON.stringify({ ...OPTIONS, threads: 1 })}, () => next.drain(Buffer.alloc(1_000)))
      next.enableInline(Buffer.alloc(1_000), Buffer.alloc(1_000, 1), () => ${length})
      const { port } = next.listen('127.0.0.1', 0)
      // While another turn has the first request, there is a next one.
      setInterval(() => connect(port, '127.0.0.1').end(${JSON.stringify(HANDSHAKE)}).on('error', () => undefined), 50)`
    await expect(run(script)).resolves.toMatchObject({ code: 7 })
  })

  it('survives the end of a worker that has an engine', async () => {
    const script = `
      import { Worker } from 'node:worker_threads'
      engine.close()
      const worker = new Worker(new URL('data:text/javascript,' + encodeURIComponent(\`
        import { parentPort, workerData } from 'node:worker_threads'
        const { loadNativeEngine } = await import(workerData.module)
        const Engine = loadNativeEngine()
        globalThis.engine = new Engine(workerData.options, () => engine.drain(Buffer.alloc(1_000)))
        engine.enableInline(Buffer.alloc(1_000), Buffer.alloc(1_000), () => 0)
        engine.listen('127.0.0.1', 0)
        // By then it has been asked to do the threads' work.
        setTimeout(() => parentPort.postMessage('running'), 200)
      \`)), { workerData: { module: ${JSON.stringify(new URL('../index.js', import.meta.url).href)}, options: ${JSON.stringify(OPTIONS)} } })
      worker.once('message', async () => console.log(await worker.terminate()))`
    await expect(run(script)).resolves.toEqual({ code: 0, signal: null, output: '1\n' })
  })
})
