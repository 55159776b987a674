import type { Command } from 'commander'
import type { Shell } from './shells.js'
import { type Flag, type Place, placesOf, type Values } from './words.js'

/** The script that completes command lines of `webmq-server` in a shell. */
export function completionScript(shell: Shell, program: Command): string {
  const places = placesOf(program)
  return { bash, zsh, fish }[shell](places)
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Cases of the words that lead to a place: `'token'|'token create'`. */
const pathsOf = (places: readonly Place[]) =>
  places.flatMap(({ path }) => (path === '' ? [] : [quoted(path)])).join('|')

/** Flags that take a value, by what it may be. */
function byValues(places: readonly Place[]): ReadonlyMap<string, { values: Values; flags: readonly string[] }> {
  const groups = new Map<string, { values: Values; flags: string[] }>()
  const kinds = new Map<string, string>()
  for (const { text, short, values } of places.flatMap(({ flags }) => flags)) {
    if (values === undefined) continue
    const kind = String(values)
    for (const flag of short === undefined ? [text] : [text, short]) {
      // A case of a script has the flag alone.
      if ((kinds.get(flag) ?? kind) !== kind) throw new Error(`${flag} has different values in two commands`)
      if (kinds.has(flag)) continue
      kinds.set(flag, kind)
      const group = groups.get(kind) ?? { values, flags: [] }
      groups.set(kind, group)
      group.flags.push(flag)
    }
  }
  return groups
}

function bash(places: readonly Place[]): string {
  const offer = (values: Values) => {
    if (values === 'files')
      return String.raw`compopt -o filenames 2>/dev/null; local IFS=$'\n'; COMPREPLY=($(compgen -f -- "$cur"))`
    return values === 'any' ? ':' : `COMPREPLY=($(compgen -W ${quoted(values.join(' '))} -- "$cur"))`
  }
  const values = [...byValues(places).values()].map(
    ({ flags, values: kind }) => `    ${flags.join('|')}) ${offer(kind)}; return ;;`,
  )
  const words = places.map(({ path, commands, flags, values: kind }) => {
    const choices = typeof kind === 'string' ? [] : kind
    const all = [...commands.map(({ text }) => text), ...choices, ...flags.map(({ text }) => text)]
    const files = kind === 'files' ? ` [[ $cur != -* ]] && { ${offer('files')}; return; };` : ''
    return `    ${quoted(path)})${files} words=${quoted(all.join(' '))} ;;`
  })
  return `# Completes webmq-server in bash: source <(webmq-server completion bash)
_webmq_server() {
  local word path='' words='' cur=\${COMP_WORDS[COMP_CWORD]} prev=\${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # Bash splits --flag=value at the sign.
  if [[ $cur == '=' ]]; then cur=''; elif [[ $prev == '=' ]]; then prev=\${COMP_WORDS[COMP_CWORD-2]}; fi
  for word in "\${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case "\${path:+$path }$word" in ${pathsOf(places)}) path="\${path:+$path }$word" ;; esac
  done
  case "$prev" in
${values.join('\n')}
  esac
  case "$path" in
${words.join('\n')}
  esac
  COMPREPLY=($(compgen -W "$words" -- "$cur"))
}
complete -F _webmq_server webmq-server
`
}

function zsh(places: readonly Place[]): string {
  const item = ({ text, note }: { readonly text: string; readonly note: string }) =>
    quoted(`${text.replaceAll(':', String.raw`\:`)}${note === '' ? '' : `:${note}`}`)
  const offer = (values: Values) => {
    if (values === 'files') return '_files'
    return values === 'any' ? "_message -r 'a value'" : `compadd -- ${values.map(quoted).join(' ')}`
  }
  const values = [...byValues(places).values()].map(
    ({ flags, values: kind }) => `    (${flags.join('|')}) ${offer(kind)}; return ;;`,
  )
  const items = places.map(({ path, commands, flags, values: kind }) => {
    const choices = typeof kind === 'string' ? [] : kind.map((text) => ({ text, note: '' }))
    const files = kind === 'files' ? ' [[ $PREFIX != -* ]] && _files;' : ''
    return `    (${quoted(path)})${files} items=(${[...commands, ...choices, ...flags].map(item).join(' ')}) ;;`
  })
  return `#compdef webmq-server
# Completes webmq-server in zsh: source <(webmq-server completion zsh), after compinit
_webmq_server() {
  local word place='' prev=\${words[CURRENT-1]}
  local -a items
  for word in "\${(@)words[2,CURRENT-1]}"; do
    case "\${place:+$place }$word" in (${pathsOf(places)}) place="\${place:+$place }$word" ;; esac
  done
  case "$prev" in
${values.join('\n')}
  esac
  case "$place" in
${items.join('\n')}
  esac
  _describe 'webmq-server' items
}
if [[ \${zsh_eval_context[-1]} == loadautofunc ]]; then _webmq_server "$@"; else compdef _webmq_server webmq-server; fi
`
}

function fish(places: readonly Place[]): string {
  const at = (...paths: readonly string[]) =>
    `-n ${quoted(`__webmq_server_at ${paths.map((path) => `"${path}"`).join(' ')}`)}`
  const line = (...parts: readonly string[]) =>
    ['complete -c webmq-server', ...parts].filter((part) => part !== '').join(' ')
  const commands = places.flatMap(({ path, commands: subs, values }) => [
    ...subs.map(({ text, note }) => line(at(path), `-a ${text} -d ${quoted(note)}`)),
    ...(typeof values === 'string' ? [] : [line(at(path), `-a ${quoted(values.join(' '))}`)]),
    ...(values === 'files' ? [line(at(path), '-F')] : []),
  ])
  const value = ({ values }: Flag) => {
    if (values === undefined) return ''
    if (values === 'files') return '-r -F'
    return values === 'any' ? '-x' : `-x -a ${quoted(values.join(' '))}`
  }
  // A flag of several commands is one line.
  const flags = new Map<string, string[]>()
  for (const { path, flags: own } of places) {
    for (const flag of own) {
      const short = flag.short === undefined ? '' : `-s ${flag.short.slice(1)}`
      const text = [`-l ${flag.text.slice(2)}`, short, value(flag), `-d ${quoted(flag.note)}`]
      const key = text.filter((part) => part !== '').join(' ')
      flags.set(key, [...(flags.get(key) ?? []), path])
    }
  }
  return `# Completes webmq-server in fish: webmq-server completion fish > ~/.config/fish/completions/webmq-server.fish
function __webmq_server_at --description 'Whether the command so far is one of these'
  set -l place ''
  for word in (commandline -opc)[2..-1]
    set -l next (string trim -- "$place $word")
    contains -- "$next" ${pathsOf(places).replaceAll('|', ' ')}; and set place $next
  end
  contains -- "$place" $argv
end
complete -c webmq-server -f
${commands.join('\n')}
${[...flags].map(([text, paths]) => line(at(...paths), text)).join('\n')}
`
}
