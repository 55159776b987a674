import { type Command, Help, type Option } from 'commander'
import { OPTIONS } from '../../options/table.js'
import { addFlagsOfOptions } from '../config.js'

/** What a value may be; `any`: nothing can be offered. */
export type Values = 'any' | 'files' | readonly string[]

export interface Word {
  readonly text: string
  /** One statement, without the default. */
  readonly note: string
}

export interface Flag extends Word {
  /** `-p` of `--port`. */
  readonly short?: string
  /** Absent: it takes none. */
  readonly values?: Values
}

/** What can follow a command. */
export interface Place {
  /** `token create`; empty for the program itself. */
  readonly path: string
  readonly commands: readonly Word[]
  readonly flags: readonly Flag[]
  readonly values: Values
}

/** Every place of a command line, from the tables that make `--help`. */
export function placesOf(program: Command): readonly Place[] {
  const serve = program.commands.find((command) => command.name() === 'serve')
  const [root, ...places] = placesBelow(program, '')
  // The program runs `serve`.
  const flags = [...(root?.flags ?? []), ...(serve === undefined ? [] : flagsOf(serve))]
  return root === undefined ? [] : [{ ...root, flags: unique(flags) }, ...places]
}

function placesBelow(command: Command, path: string): readonly Place[] {
  addFlagsOfOptions(command)
  const [argument] = command.registeredArguments
  const own = {
    path,
    commands: command.commands.map((sub) => ({ text: sub.name(), note: noteOf(sub.description()) })),
    flags: flagsOf(command),
    values: argument === undefined ? 'any' : (argument.argChoices ?? valuesNamed(argument.name())),
  } as const
  return [own, ...command.commands.flatMap((sub) => placesBelow(sub, `${path} ${sub.name()}`.trim()))]
}

function flagsOf(command: Command): readonly Flag[] {
  return new Help().visibleOptions(command).map((option) => ({
    text: option.long ?? '',
    note: noteOf(option.description),
    ...(option.short === undefined ? {} : { short: option.short }),
    ...(option.required ? { values: valuesOf(option) } : {}),
  }))
}

function valuesOf(option: Option): Values {
  if (option.argChoices !== undefined) return option.argChoices
  const spec = OPTIONS.find(({ flag }) => option.long === `--${flag}`)
  if (spec?.type === 'choice') return spec.choices
  const [, placeholder = ''] = /<(.+)>/.exec(option.flags) ?? []
  return valuesNamed(placeholder)
}

/** By the name of a value in the help: `file`, `pem|file`. */
function valuesNamed(placeholder: string): Values {
  return /\bfile\b/.test(placeholder) ? 'files' : 'any'
}

function noteOf(description: string): string {
  return (description.split(/[:;]| \(/)[0] ?? '').replace(/\.$/, '')
}

function unique(flags: readonly Flag[]): readonly Flag[] {
  return [...new Map(flags.map((flag) => [flag.text, flag])).values()]
}
