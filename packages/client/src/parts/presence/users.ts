import type { Member, User } from './types.js'

/** Members by user, in the order of their first members. */
export function usersOf(members: Iterable<Member>): readonly User[] {
  const users = new Map<string, { userId?: string; members: Member[] }>()
  for (const member of members) {
    const { userId } = member
    // A prefix, because a user may have the same id as a member.
    const name = userId === undefined ? `m${member.id}` : `u${userId}`
    const user = users.get(name)
    if (user) user.members.push(member)
    else users.set(name, { ...(userId !== undefined && { userId }), members: [member] })
  }
  return [...users.values()]
}

/** Users with members in the first list and none in the second. */
export function usersOnlyIn(members: readonly Member[], others: readonly Member[]): readonly User[] {
  const known = new Set(usersOf(others).map(nameOf))
  return usersOf(members).filter((user) => !known.has(nameOf(user)))
}

function nameOf({ userId, members: [first] }: User): string {
  return userId === undefined ? `m${first?.id}` : `u${userId}`
}
