//! What becomes of the privileges of a server, which listens to a network: it gives them up for good as soon as
//! its sockets are open.

use crate::Failure;

/// What becomes of the privileges of a server.
#[derive(Clone, Debug)]
pub enum Privileges {
    /// They are kept.
    Kept,
    /// All capabilities are given up for good.
    Dropped,
    /// The same, and a process of root becomes this user.
    DroppedAs(String),
}

impl Privileges {
    /// Does so, for this thread and those that it starts afterwards.
    pub(crate) fn apply(&self) -> Result<(), Failure> {
        match self {
            Self::Kept => Ok(()),
            Self::Dropped => drop_privileges(None),
            Self::DroppedAs(user) => drop_privileges(Some(user)),
        }
    }
}

/// Gives up all privileges for good: becomes this user, if it is root and one is named, and drops the
/// capabilities that others can have, too; no program that it starts has more. Other threads that are there
/// already keep theirs.
fn drop_privileges(user: Option<&str>) -> Result<(), Failure> {
    use rustix::thread::{
        CapabilitySet, CapabilitySets, clear_ambient_capability_set, set_capabilities,
        set_no_new_privs,
    };
    if let (true, Some(user)) = (nix::unistd::getuid().is_root(), user) {
        become_user(user)?;
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    clear_ambient_capability_set()
        .and_then(|()| set_capabilities(None, none))
        .and_then(|()| set_no_new_privs(true))
        .map_err(|error| Failure::System(format!("cannot give up privileges: {error}")))
}

/// Becomes another user for good.
fn become_user(user: &str) -> Result<(), Failure> {
    use nix::unistd::{Uid, User, setgroups, setresgid, setresuid};
    let failed = |error: nix::Error| Failure::System(format!("cannot become user {user}: {error}"));
    let found = User::from_name(user).map_err(failed)?;
    let User { uid, gid, .. } = found.ok_or_else(|| {
        Failure::System(format!("started as root, and there is no user {user} to become"))
    })?;
    if uid == Uid::from_raw(0) {
        return Err(Failure::System(format!("user {user} is root: name another one")));
    }
    setgroups(&[]).map_err(failed)?;
    setresgid(gid, gid, gid).map_err(failed)?;
    setresuid(uid, uid, uid).map_err(failed)
}
