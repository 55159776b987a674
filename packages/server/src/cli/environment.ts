import { WebMQError } from 'webmq-client/protocol'
import { didYouMean } from '../options/closest-name.js'
import { environmentNameOf, type OptionSpec, type OptionValue } from '../options/spec.js'
import { OPTIONS } from '../options/table.js'
import { fileVariableOf, hasFileVariant, type OptionValues, readOption, type TextSource } from './option-sources.js'

/** The variable that names the config file, like `--config`. */
export const CONFIG_VARIABLE = 'WEBMQ_CONFIG'

/**
 * Reads options from the environment: `WEBMQ_MAX_PAYLOAD=64KiB`, `WEBMQ_JWT_SECRET_FILE=/run/secrets/jwt`. Without
 * `WEBMQ_PORT` it reads `PORT`, which hosting platforms set.
 *
 * An empty variable counts as not set. Variables for tokens are an exception, because an empty secret must not open the
 * server to everyone.
 *
 * @throws {WebMQError} `E_OPTION_INVALID` with the name of the variable.
 */
export function readEnvironment(env: NodeJS.ProcessEnv, specs: readonly OptionSpec[] = OPTIONS): OptionValues {
  const values = new Map<string, OptionValue>()
  for (const spec of specs) {
    const source = sourceOf(spec, env)
    if (source !== undefined) values.set(spec.name, readOption(spec, source))
  }
  return values
}

function sourceOf(spec: OptionSpec, env: NodeJS.ProcessEnv): TextSource | undefined {
  const name = environmentNameOf(spec)
  const text = textOf(spec, env, name)
  const file = hasFileVariant(spec) ? textOf(spec, env, fileVariableOf(spec)) : undefined
  if (text !== undefined && file !== undefined) {
    throw new WebMQError('E_OPTION_INVALID', { detail: `${name} and ${fileVariableOf(spec)} are both set; set one` })
  }
  if (text !== undefined) return { label: name, text }
  if (file !== undefined) return { label: fileVariableOf(spec), text: file, isFile: true }
  const platformPort = spec.name === 'port' ? textOf(spec, env, 'PORT') : undefined
  return platformPort === undefined ? undefined : { label: 'PORT', text: platformPort }
}

function textOf(spec: OptionSpec, env: NodeJS.ProcessEnv, name: string): string | undefined {
  const text = env[name]
  return text === '' && spec.section !== 'Tokens' ? undefined : text
}

/** One sentence for each unknown `WEBMQ_…` variable, usually a typo. */
export function unknownVariables(env: NodeJS.ProcessEnv): readonly string[] {
  const known = [
    CONFIG_VARIABLE,
    ...OPTIONS.map(environmentNameOf),
    ...OPTIONS.filter(hasFileVariant).map(fileVariableOf),
  ]
  return Object.keys(env)
    .filter((name) => name.startsWith('WEBMQ_') && !known.includes(name))
    .map((name) => `unknown environment variable ${name}${didYouMean(name, known)}`)
}
