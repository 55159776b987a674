import { invalidOption } from '../base/invalid-option.js'
import { didYouMean } from '../options/closest-name.js'
import { environmentNameOf, type OptionSpec, type OptionValue } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import {
  type FileRecorder,
  fileVariableOf,
  hasFileVariant,
  type OptionValues,
  readOption,
  type TextSource,
} from './option-sources.js'

/** The variable that names the config file, like `--config`. */
export const CONFIG_VARIABLE = 'WEBMQ_CONFIG'

/** The variable that names a file like the config file, for images and packages: every other source overrides it. */
export const DEFAULTS_VARIABLE = 'WEBMQ_DEFAULTS'

/** The address and the token of commands that are clients of a server. */
export const URL_VARIABLE = 'WEBMQ_URL'
export const TOKEN_VARIABLE = 'WEBMQ_TOKEN'

/**
 * Reads options from the environment: `WEBMQ_MAX_PAYLOAD=64KiB`, `WEBMQ_JWT_SECRET_FILE=/run/secrets/jwt`.
 *
 * An empty variable counts as not set. Variables for tokens are an exception, because an empty secret must not open the
 * server to everyone.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the name of the variable.
 */
export function readEnvironment(
  env: NodeJS.ProcessEnv,
  specs: readonly OptionSpec[] = OPTIONS,
  record?: FileRecorder,
): OptionValues {
  const values = new Map<string, OptionValue>()
  for (const spec of specs) {
    const source = sourceOf(spec, env)
    if (source !== undefined) values.set(spec.name, readOption(spec, { ...source, record }))
  }
  return values
}

function sourceOf(spec: OptionSpec, env: NodeJS.ProcessEnv): TextSource | undefined {
  const name = environmentNameOf(spec)
  const text = textOf(spec, env, name)
  const file = hasFileVariant(spec) ? textOf(spec, env, fileVariableOf(spec)) : undefined
  if (text !== undefined && file !== undefined) {
    throw invalidOption(`${name} and ${fileVariableOf(spec)} are both set; set one`)
  }
  if (text !== undefined) return { label: name, text }
  return file === undefined ? undefined : { label: fileVariableOf(spec), text: file, isFile: true }
}

/**
 * Reads `PORT`, which hosting platforms set. It is not in {@link readEnvironment}, because the config file overrides it:
 * a `PORT` may be meant for another program, `"port"` is meant for this one.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` when it is not a port.
 */
export function readPlatformPort(env: NodeJS.ProcessEnv, specs: readonly OptionSpec[] = OPTIONS): OptionValues {
  const spec = specs.find(({ name }) => name === 'port')
  const text = spec === undefined ? undefined : textOf(spec, env, 'PORT')
  if (spec === undefined || text === undefined) return new Map()
  return new Map([[spec.name, readOption(spec, { label: 'PORT', text })]])
}

function textOf(spec: OptionSpec, env: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = env[name]
  return text === '' && spec.section !== 'Tokens' ? undefined : text
}

/** One sentence for each unknown `WEBMQ_…` variable, usually a typo. */
export function unknownVariables(env: NodeJS.ProcessEnv): readonly string[] {
  const known = [
    CONFIG_VARIABLE,
    DEFAULTS_VARIABLE,
    URL_VARIABLE,
    TOKEN_VARIABLE,
    ...OPTIONS.map(environmentNameOf),
    ...OPTIONS.filter(hasFileVariant).map(fileVariableOf),
  ]
  return Object.keys(env)
    .filter((name) => name.startsWith('WEBMQ_') && !known.includes(name))
    .map((name) => `unknown environment variable ${name}${didYouMean(name, known)}`)
}
