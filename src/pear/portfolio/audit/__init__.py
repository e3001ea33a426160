"""Is recourse fair between groups?"""

from pear.portfolio.audit.audit import AuditSettings, audit
from pear.portfolio.audit.page import page

__all__ = ["AuditSettings", "audit", "page"]
