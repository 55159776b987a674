import { execFile } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { promisify } from 'node:util'
import { makeCertificate } from 'webmq-services'
import { ROOT } from './blocks.js'

const run = promisify(execFile)

/** `webmq-server` alone is noted down, with its variables; `sub` and `top` end by themselves. */
const WEBMQ_SERVER = (folder: string) => `#!/bin/sh
case "$1" in
  sub) case "$*" in *--count*) ;; *) set -- "$@" --count 1 ;; esac ;;
  top) case "$*" in *http:*) set -- "$@" --once ;; *) set -- "$@" "$WEBMQ_HTTP" ;; esac ;;
  pub | doctor | init | explain | token | config | outbox) ;;
  *) { env | grep '^WEBMQ_'; echo --; for each; do echo "$each"; done; echo ==; } >> ${folder}/started; exit ;;
esac
exec ${process.execPath} ${ROOT}packages/server/bin/webmq-server.js "$@"
`

/** Without the packages that npx would get: they are installed here. */
const NPX = `#!/bin/sh
while [ "$1" = -p ]; do shift 2; done
exec "$@"
`

/** A server that a block has started. */
export interface StartedServer {
  readonly args: readonly string[]
  readonly env: NodeJS.ProcessEnv
}

/** A folder in which blocks of commands run one after the other, with `/etc` and `/run` of its own. */
export class Machine {
  readonly folder = mkdtempSync(path.join(tmpdir(), 'webmq-docs-'))
  readonly #env: NodeJS.ProcessEnv

  constructor(env: NodeJS.ProcessEnv) {
    this.write({ 'bin/webmq-server': WEBMQ_SERVER(this.folder), 'bin/npx': NPX, started: '' })
    symlinkSync(process.execPath, path.join(this.folder, 'bin/node'))
    this.#env = { ...env, PATH: `${this.folder}/bin:/usr/bin:/bin` }
  }

  /** Files that only their owner may read, and run. */
  write(files: Readonly<Record<string, string>>): void {
    for (const [name, text] of Object.entries(files)) {
      const file = path.join(this.folder, name)
      mkdirSync(path.dirname(file), { recursive: true })
      writeFileSync(file, text, { mode: 0o700 })
    }
  }

  async writeCertificate(cert: string, key: string): Promise<void> {
    const made = await makeCertificate({ names: ['app.example.com'] })
    this.write({ [cert]: made.cert, [key]: made.key })
  }

  /** Runs commands, and returns what they have printed and which servers they have started. */
  async run(code: string): Promise<{ readonly output: string; readonly servers: readonly StartedServer[] }> {
    const here = code.replaceAll(/(?<=[\s"'(=:])\/(etc|run)\//g, `${this.folder}/$1/`)
    const { stdout } = await run('sh', ['-ec', here], { cwd: this.folder, env: this.#env, timeout: 120_000 })
    const started = readFileSync(path.join(this.folder, 'started'), 'utf8')
    this.write({ started: '' })
    const servers = started
      .split('==\n')
      .slice(0, -1)
      .map((text): StartedServer => {
        const [variables = '', args = ''] = text.split('--\n')
        return {
          args: args.split('\n').slice(0, -1),
          env: Object.fromEntries(variables.split('\n').flatMap((line) => (line ? [line.split(/=(.*)/s)] : []))),
        }
      })
    return { output: stdout, servers }
  }

  remove(): void {
    rmSync(this.folder, { recursive: true })
  }
}
