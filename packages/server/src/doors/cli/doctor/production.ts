import { existsSync } from 'node:fs'
import { invalidOption } from '../../../kernel/base/invalid-option.js'
import type { Terminal } from '../terminal.js'
import { examine, printFindings } from './diagnose.js'
import { checkFiles } from './production/files.js'
import { type ProductionFolder, readFolder } from './production/folder.js'
import { killOne } from './production/kill-one.js'
import { checkOutside, signed } from './production/outside.js'
import { checkRunning } from './production/running.js'
import { type DoctorTarget, type Finding, parseServerUrl } from './target.js'

export interface ProductionFlags {
  readonly json: boolean
  /** The command, or `true`: that of the folder. */
  readonly killOne: string | true | undefined
}

/** Ends a node at once, in the way of its supervisor, which starts it again. */
const KILL: Readonly<Record<ProductionFolder['kind'], string>> = {
  systemd: 'systemctl kill --signal=KILL webmq@2.service',
  compose: 'docker compose kill --signal SIGKILL node-2',
  helm: 'kubectl delete pod --grace-period=0 --force "$(kubectl get pod --selector app.kubernetes.io/name=webmq --output name | head -1)"',
}

const TTL_S = 600
/** No URL begins so. */
const FOLDER = /^[./~]/

/**
 * Examines an installation from outside, and with a folder of `init` from inside. Returns the exit code.
 * @param place The folder, or the URL that clients use.
 */
export async function examineProduction(
  place: string,
  flags: ProductionFlags,
  common: Omit<DoctorTarget, 'url' | 'host' | 'port' | 'isSecure'>,
  terminal: Terminal,
): Promise<number> {
  const folder = existsSync(place) ? readFolder(place) : undefined
  if (folder === undefined && FOLDER.test(place)) throw invalidOption(`there is no folder ${place}`)
  const target = {
    ...common,
    ...parseServerUrl(folder === undefined ? place : `wss://${folder.host}${folder.options?.path ?? '/ws'}`),
  }
  const command = flags.killOne === true ? folder && KILL[folder.kind] : flags.killOne
  if (flags.killOne === true && command === undefined)
    throw invalidOption('--kill-one: with a URL, give the command that kills one node')
  const nowS = Math.floor(Date.now() / 1_000)
  const secret = folder?.secret('jwt-secret') ?? ''
  const claims = { aud: folder?.options?.jwt?.audience, iat: nowS, exp: nowS + TTL_S }
  const token = common.token ?? (secret === '' ? undefined : await signed(claims, secret))
  return await printFindings(findings({ ...target, token }, folder, command), flags.json, terminal)
}

async function* findings(
  target: DoctorTarget,
  folder: ProductionFolder | undefined,
  command: string | undefined,
): AsyncGenerator<Finding> {
  if (folder !== undefined) {
    yield* checkFiles(folder)
    yield* await checkRunning(folder, target.timeoutMs)
  }
  let isReachable = true
  let isTrusted = true
  for await (const finding of examine(target)) {
    isReachable &&= finding.status !== 'fail' || !['dns', 'tcp', 'tls', 'upgrade'].includes(finding.check)
    isTrusted &&= finding.status !== 'fail'
    yield finding
  }
  if (!isReachable) return
  yield* await checkOutside(target, folder)
  // A token goes only over a way that clients would trust.
  if (command !== undefined && isTrusted) yield* await killOne(target, target.token, command)
}
