"""Is recourse fair between groups?"""

from pear.portfolio.audit.audit import AuditSettings, audit
from pear.portfolio.audit.page import page
from pear.portfolio.audit.report import Report

__all__ = ["AuditSettings", "Report", "audit", "page"]
